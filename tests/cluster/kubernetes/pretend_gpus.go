package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Interval at which the plugin reads the file of unhealthy devices and checks whether the kubelet's socket is a new one.
const pollInterval = 250 * time.Millisecond

// gpuPlugin registers GPUs with the kubelet that do not exist. Pods get exclusive ones, as they would get real ones, and an
// environment variable with their names, but no device. Real clusters run the GPU vendor's plugin.
type gpuPlugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	ids           []string
	unhealthyFile string // device names separated by white space; absent: all are healthy
}

func (p *gpuPlugin) devices() []*deviceplugin.Device {
	text, _ := os.ReadFile(p.unhealthyFile)
	unhealthy := strings.Fields(string(text))
	var devices []*deviceplugin.Device
	for _, id := range p.ids {
		health := deviceplugin.Healthy
		if slices.Contains(unhealthy, id) {
			health = deviceplugin.Unhealthy
		}
		devices = append(devices, &deviceplugin.Device{ID: id, Health: health})
	}
	return devices
}

func (p *gpuPlugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

// ListAndWatch sends the devices once, and again whenever the health of one changes.
func (p *gpuPlugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	sent := ""
	for {
		devices := p.devices()
		if state := fmt.Sprint(devices); state != sent {
			log.Printf("devices: %s", state)
			if err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
			sent = state
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(pollInterval):
		}
	}
}

func (p *gpuPlugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	response := &deviceplugin.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		ids := strings.Join(container.DevicesIds, ",")
		log.Printf("allocate: %s", ids)
		response.ContainerResponses = append(response.ContainerResponses, &deviceplugin.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": ids},
		})
	}
	return response, nil
}

func register(kubeletSocket, endpoint, resource string) error {
	connection, err := grpc.NewClient("unix://"+kubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = deviceplugin.NewRegistrationClient(connection).Register(ctx, &deviceplugin.RegisterRequest{
		Version:      deviceplugin.Version,
		Endpoint:     endpoint,
		ResourceName: resource,
		Options:      &deviceplugin.DevicePluginOptions{},
	})
	return err
}

// serve runs one server and registers it. It returns when the kubelet does not run, or has restarted and so removed the
// server's socket.
func serve(plugin *gpuPlugin, resource string) error {
	kubeletSocket := deviceplugin.KubeletSocket
	before, err := os.Stat(kubeletSocket)
	if err != nil {
		return err
	}
	endpoint := strings.ReplaceAll(resource, "/", "-") + ".sock"
	socket := filepath.Join(deviceplugin.DevicePluginPath, endpoint)
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	deviceplugin.RegisterDevicePluginServer(server, plugin)
	go server.Serve(listener)
	if err := register(kubeletSocket, endpoint, resource); err != nil {
		return err
	}
	log.Printf("registered %d pretend devices as %s", len(plugin.ids), resource)
	for {
		time.Sleep(pollInterval)
		if now, err := os.Stat(kubeletSocket); err != nil || !os.SameFile(before, now) {
			return fmt.Errorf("the kubelet was started anew")
		}
	}
}

func pretendGPUs() int {
	resource := flag.String("resource", "nvidia.com/gpu", "resource name to advertise")
	count := flag.Int("count", 4, "how many devices")
	unhealthyFile := flag.String("unhealthy-file", "/run/pretend-gpus-unhealthy", "names of devices that are to look broken")
	flag.Parse()

	plugin := &gpuPlugin{unhealthyFile: *unhealthyFile}
	for i := range *count {
		plugin.ids = append(plugin.ids, fmt.Sprintf("gpu-%d", i))
	}
	for {
		log.Printf("not registered: %v", serve(plugin, *resource))
		time.Sleep(pollInterval)
	}
}
